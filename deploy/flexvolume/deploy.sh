#!/bin/sh
# Installs the Flexvolume driver of this image on the node, in one step, and then sleeps: a container of a DaemonSet must not end.
# Source: docs/behaviour/flexvolume.md 6.
#
# Environment: DRIVER, name of the driver and of its file in the image; VENDOR, may be empty. IMAGE_ROOT and FLEXMNT (the node's
# driver directory) are for tests.
set -eu

driver=${DRIVER:?"set DRIVER to the name of the driver"}
vendor=${VENDOR-}
source=${IMAGE_ROOT-}/$driver
target=${FLEXMNT-/flexmnt}

case $vendor$driver in
  */* | *..*)
    echo "VENDOR and DRIVER must not hold / or ..: correct them" >&2
    exit 1
    ;;
esac
if [ -n "$vendor" ]; then driver_dir=$vendor~$driver; else driver_dir=$driver; fi

mkdir -p "$target/$driver_dir"
# A name with a dot is not seen: no kubelet runs a file that is only half there.
rm -f "$target/$driver_dir/.$driver"
cp "$source" "$target/$driver_dir/.$driver"
chmod 755 "$target/$driver_dir/.$driver"
mv -f "$target/$driver_dir/.$driver" "$target/$driver_dir/$driver"
echo "installed $driver_dir/$driver"

trap 'exit 0' TERM INT
while :; do
  sleep 3600 &
  wait $!
done
