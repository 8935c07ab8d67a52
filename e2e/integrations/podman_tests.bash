# Stands for test/system/helpers.bash of Podman's tests, whose file is helpers.theirs.bash beside it. What differs: there
# is no registry and no image but the sandbox's, the machine has other operators, and the machine may be slow.
source "$BATS_TEST_DIRNAME/helpers.theirs.bash"
IMAGE=$CHECK_IMAGE

# Theirs removes all images but one of a registry.
function basic_setup() {
    PODMAN_TMPDIR=$(mktemp -d --tmpdir="$BATS_TMPDIR" podman_bats.XXXXXX)
    MOST_RECENT_PODMAN_COMMAND=
}

# Theirs also removes all networks that no container uses; a rootful engine's are the whole machine's.
function basic_teardown() {
    run_podman '?' rm -t 0 --all --force --ignore
    command rm -rf "$PODMAN_TMPDIR"
}

# 4.3.1 calls this, but does not have it; find_exec_pid_files also prints the command that it runs.
function check_exec_pid() {
    find "$($PODMAN info --format '{{.Store.RunRoot}}')" -type f -iname 'exec_pid_*'
}

# The terminal of 450-interactive.bats ends after 10 seconds.
function timeout() {
    if [[ $2 == socat ]]; then exec timeout "$CHECK_SECONDS" "${@:2}"; fi
    command timeout "$@"
}
