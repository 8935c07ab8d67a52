#!/bin/sh
# As root, when USER has no login any more: token-daemon's unit, installed before and with linger, has outlived it.
# usage: linger.sh USER
set -eu
user=$1
uid=$(id -u "$user")
unit=podbot-token-daemon.service
as_user() { runuser -u "$user" -- env XDG_RUNTIME_DIR="/run/user/$uid" HOME="/home/$user" "$@"; }
active() { as_user systemctl --user is-active --quiet "$unit"; }
# What the user has, for the log of a failure.
found() {
  loginctl list-sessions --no-legend
  loginctl user-status "$user" --no-pager --lines 0 || true
  systemctl status --no-pager --lines 20 "user@$uid.service" || true
}
until_true() {
  tries=60
  until "$@"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { echo "not after 60 looks: $*"; found; exit 1; }
    sleep 1
  done
}
# Not `! pgrep`: `set -e` ignores the status of a negated command.
no_daemon() { if pgrep -u "$user" -f token-daemon; then echo "a token-daemon still runs"; return 1; fi; }
# The user's manager has a session of its own since systemd 256.
logins() { loginctl list-sessions --no-legend | grep -w "$user" | grep -vw manager | while read -r id _; do echo "$id"; done; }
# An engine's idle service that an earlier part started keeps the session that it was started in, closing, for 5 min.
no_login() {
  for id in $(logins); do
    [ "$(loginctl show-session "$id" -p State --value)" != closing ] || loginctl terminate-session "$id"
  done
  [ -z "$(logins)" ]
}
no_manager() { ! systemctl is-active --quiet "user@$uid.service"; }

until_true no_login
sleep 12 # UserStopDelaySec=10: without linger the user's manager would be gone
active
echo "it runs after the logout"

loginctl disable-linger "$user"
until_true no_manager
no_daemon
echo "without linger it ends"

loginctl enable-linger "$user"
until_true active
echo "with linger it starts again, and no user has logged in"

as_user "/home/$user/podbot/.venv/bin/podbot" token-daemon uninstall
no_daemon
loginctl disable-linger "$user"
