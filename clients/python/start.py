"""Starts an adapter: start.py DRIVER SOCKET. It must be readable for any Python, to say which one is needed."""

import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
installed = os.path.join(here, "packages")
version = "%d.%d" % sys.version_info[:2]
if version not in os.listdir(installed):
    needed = " or ".join(sorted(os.listdir(installed)))
    sys.exit("%s: built for Python %s, but python3 is %s" % (sys.argv[1], needed, version))
sys.path[:0] = [here, os.path.join(installed, version)]

from redquake_adapter.main import main  # noqa: E402

main(*sys.argv[1:])
