#!/usr/bin/env bash
# Builds an earlier version of the operator from a clone of this repository: earlier.sh COMMIT FOLDER
# FOLDER gets image.tar, with the image ghcr.io/redquake/redquake:earlier, and install.yaml, which names it.
set -euo pipefail
commit=$1 folder=$2
cd "$(dirname "$0")/../.."

tools=$PWD/bin/tools
rm -rf "$folder"
mkdir -p "$folder"
git clone -q --no-checkout . "$folder/source"
git -C "$folder/source" checkout -q "$commit"
mkdir -p "$folder/source/bin"
ln -s "$tools" "$folder/source/bin/tools"
image=ghcr.io/redquake/redquake:earlier
# Only the variables of its own Makefile count there.
env -u MAKEFLAGS -u MAKELEVEL -u COMPONENTS -u NAMESPACES make -C "$folder/source" image build/install.yaml IMG="$image" IMAGE_TAR="$folder/image.tar"
cp "$folder/source/build/install.yaml" "$folder/install.yaml"
echo "built $(git -C "$folder/source" log -1 --format='%h (%s)') as $image"
