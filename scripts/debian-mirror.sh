#!/usr/bin/env bash
# For `source`: mirror, the address of the Debian that this machine itself installs from.

mirror() {
  local found
  found=$(sed -n 's/^URIs: *\([^ ]*debian\/\{0,1\}\)$/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
  [ -n "$found" ] || found=$(sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*debian\/\{0,1\}\) .*/\2/p' /etc/apt/sources.list 2>/dev/null | head -n 1)
  echo "${found:-http://deb.debian.org/debian}"
}
