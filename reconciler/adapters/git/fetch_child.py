"""What is started to fetch: the file of a program, so that Python can run it in its isolated mode.

The project comes last on the path, so nothing beside it stands in for a module of Python or of a library.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[3]))
    from reconciler.adapters.git.child.serve import main

    main()
