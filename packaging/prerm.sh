#!/bin/sh
# Stop the service when the package goes. The journal stays, and so do the clusters as they are.
set -e
[ "$1" = remove ] && [ -d /run/systemd/system ] || exit 0
systemctl disable --now reconciler.service
