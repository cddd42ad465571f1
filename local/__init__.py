"""The whole stack on one machine: the template's resources and the functions, unchanged.

The core is put on the path here, like its layer in Lambda.
"""

import sys
from pathlib import Path

_CORE = str(Path(__file__).resolve().parent.parent / "layers" / "core")
if _CORE not in sys.path:
    sys.path.insert(0, _CORE)
