# What test_deb.sh does in the chroot, whose /run/packages has the packages.
cd /run/packages
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
config=/etc/varve/varve.toml data=/var/lib/varve work=/run/scratch

fail() { echo "FAILED: $*" >&2 && exit 1; }
expect() { [ "$2" = "$3" ] || fail "$1: $2, not $3"; }
ask() { varve --unixsocket="$work/socket" "$@"; }
# Runs the installed server as its unit does, on a socket where no other server can be.
start() {
  runuser -u varve -- varve-server --config "$config" --dir "$data" --http-port=0 --port=0 --unixsocket="$work/socket" 2>>"$work/log" &
  server=$!
  until ask ping >/dev/null 2>&1; do
    kill -0 $server 2>/dev/null || fail "the server did not start: $(cat "$work/log")"
  done
}
installed() { dpkg -i "$@" >"$work/dpkg" 2>&1 || fail "dpkg -i $*: $(cat "$work/dpkg")"; }
purged() { dpkg -P "$@" >"$work/dpkg" 2>&1 || fail "dpkg -P $*: $(cat "$work/dpkg")"; }

if id varve >/dev/null 2>&1; then fail "this machine has a user varve already"; fi
mkdir -m 1777 "$work"

installed varve-server_0.1.0_*.deb varve-tools_*.deb libvarve-dev_*.deb varve-doc_*.deb
expect "the configuration" "$(stat -c '%a %U:%G' $config)" "640 root:varve"
expect "the data" "$(stat -c '%a %U:%G' $data)" "700 varve:varve"
for file in /usr/bin/varve-server /usr/bin/varve /lib/systemd/system/varve-server.service /lib/systemd/system/varve-server@.service \
  /usr/share/man/man8/varve-server.8.gz /usr/share/man/man1/varve.1.gz /usr/share/man/man5/varve.toml.5.gz \
  /usr/share/bash-completion/completions/varve /usr/share/zsh/vendor-completions/_varve \
  /lib/systemd/system/varve-server.socket /usr/share/doc/varve-doc/html/index.html \
  /usr/share/doc/varve-doc/contrib/grafana/varve.json /usr/share/doc/varve-doc/contrib/prometheus/varve.rules.yml; do
  [ -e "$file" ] || fail "$file is not installed"
done
[ -z "$(find /etc/systemd/system -name varve-server.socket)" ] || fail "the socket is enabled, though nobody asked for it"
for setting in $(varve-server --example-config | sed -n 's/^# \([a-z-]*\) = .*/\1/p'); do
  zgrep -q -- "${setting//-/.*-}" /usr/share/man/man5/varve.toml.5.gz || fail "varve.toml(5) lacks $setting"
done
pkg-config --exists varve || fail "pkg-config does not find the library"

start
ask put city:1 Zug
kill -9 $(pgrep -x varve-server) && wait $server 2>/dev/null || true
start
expect "what was written before kill -9" "$(ask get city:1)" Zug

# A systemd that notes what it is asked for.
mkdir -p /run/systemd/system
cat >/usr/local/bin/systemctl <<'EOF'
#!/bin/sh
case "$*" in
  *list-units*) echo "varve-server.service loaded active running Varve" ;;
  *) echo "$*" >>/run/scratch/systemctl ;;
esac
EOF
chmod +x /usr/local/bin/systemctl
rm -f /bin/systemctl /usr/bin/systemctl
ln -s /usr/local/bin/systemctl /usr/bin/systemctl

: >$work/systemctl
echo 'maxclients = 500' >>$config
installed varve-server_0.1.1~test.deb
grep -q 'restart varve-server.service' $work/systemctl || fail "an upgrade did not restart the server: $(cat $work/systemctl $work/dpkg)"
grep -q '^maxclients = 500$' $config || fail "an upgrade took the settings away"
if grep -qE '(^| )stop' $work/systemctl; then fail "an upgrade stopped the server before it could go on: $(cat $work/systemctl)"; fi

: >$work/systemctl
echo 'maxclient = 500' >>$config
installed varve-server_0.1.2~test.deb
if grep -qE 'restart|stop' $work/systemctl; then fail "an upgrade restarted the server with a wrong configuration"; fi
grep -q 'maxclient is no setting, did you mean maxclients' $work/dpkg || fail "an upgrade does not say what is wrong: $(cat $work/dpkg)"
grep -q 'varve-server.service goes on with the old version' $work/dpkg || fail "an upgrade does not say that the old server goes on"
expect "the server, through both upgrades" "$(ask get city:1)" Zug
expect "the configuration" "$(stat -c '%a %U:%G' $config)" "640 root:varve"

kill $(pgrep -x varve-server) && wait $server || fail "the server did not stop: $(cat $work/log)"
: >$work/systemctl
mkdir /var/log/varve && touch /var/log/varve/audit.log
purged varve-server
grep -qF 'varve-server@*.service' $work/systemctl || fail "a purge leaves instances running: $(cat $work/systemctl)"
[ ! -e /var/log/varve ] || fail "a purge left logs"
[ -e $data/MANIFEST ] || fail "a purge took the data"
[ ! -e $config ] || fail "a purge left the configuration"
grep -q "$data holds data and is kept" $work/dpkg || fail "a purge does not say that data is left: $(cat $work/dpkg)"

rm -r $data
installed varve-server_0.1.0_*.deb
purged varve-server varve-tools libvarve-dev varve-doc
[ ! -e $data ] || fail "a purge left an empty directory"
[ ! -e /etc/varve ] || fail "a purge left /etc/varve"
