"""`python -m chaos.proxy`."""

import sys

from chaos.proxy.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
