#!/bin/sh
# instance_unit.sh < varve-server.service > varve-server@.service: makes the unit of one of several servers on a machine
# from the unit of the only one. The instance NAME has its configuration in /etc/varve/NAME.toml, which gives it ports of
# its own, and its data in /var/lib/varve/NAME.
set -eu
sed -e 's#^Description=.*#& (%i)#' -e 's#/etc/varve/varve\.toml#/etc/varve/%i.toml#' -e 's#/var/lib/varve#&/%i#' \
  -e 's#^\(State\|Runtime\|Logs\)Directory=varve$#&/%i#'
