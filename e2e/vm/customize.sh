#!/bin/sh
# Makes a Debian tree a machine that boots under QEMU: an mmdebstrap hook. usage: customize.sh TREE USER STATE PUBLIC-KEY
set -eu
tree=$1 user=$2 state=$3 key=$4

echo podbot-vm >"$tree/etc/hostname"
echo "127.0.0.1 localhost podbot-vm" >"$tree/etc/hosts"
echo "/dev/vda / ext4 defaults,noatime 0 1" >"$tree/etc/fstab"

# QEMU's own network: it answers DHCP, and is the name server.
printf '[Match]\nName=e*\n[Network]\nDHCP=yes\nDNS=10.0.2.3\n' >"$tree/etc/systemd/network/20-wired.network"
chroot "$tree" systemctl -q enable systemd-networkd systemd-resolved ssh
rm -f "$tree/etc/resolv.conf"
ln -s /run/systemd/resolve/stub-resolv.conf "$tree/etc/resolv.conf"
# Nothing of its own accord: no downloads, and no waiting for a network that is there already.
chroot "$tree" systemctl -q mask apt-daily.timer apt-daily-upgrade.timer systemd-networkd-wait-online.service

# Only the key made here may log in, over loopback.
rm -f "$tree"/etc/ssh/ssh_host_*
install -m 600 "$state/host_key" "$tree/etc/ssh/ssh_host_ed25519_key"
install -m 644 "$state/host_key.pub" "$tree/etc/ssh/ssh_host_ed25519_key.pub"
printf 'PasswordAuthentication no\nAcceptEnv PODBOT_* CI\nMaxSessions 40\n' >"$tree/etc/ssh/sshd_config.d/podbot.conf"
install -d -m 700 "$tree/root/.ssh"
install -m 600 "$key" "$tree/root/.ssh/authorized_keys"

chroot "$tree" useradd --create-home --shell /bin/bash "$user"
chroot "$tree" install -d -m 700 -o "$user" -g "$user" "/home/$user/.ssh"
install -m 600 "$key" "$tree/home/$user/.ssh/authorized_keys"
chroot "$tree" chown "$user:$user" "/home/$user/.ssh/authorized_keys"
echo "$user ALL=(ALL) NOPASSWD: ALL" >"$tree/etc/sudoers.d/$user"
chmod 440 "$tree/etc/sudoers.d/$user"

# A network that signs TLS with a certificate of its own is this machine's, and so the guest's.
if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
  cp /usr/local/share/ca-certificates/*.crt "$tree/usr/local/share/ca-certificates/"
  chroot "$tree" update-ca-certificates >/dev/null
  bundle=/etc/ssl/certs/ca-certificates.crt
  printf 'PIP_CERT=%s\nNODE_EXTRA_CA_CERTS=%s\nSSL_CERT_FILE=%s\n' "$bundle" "$bundle" "$bundle" >>"$tree/etc/environment"
fi
