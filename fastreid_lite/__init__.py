"""fastreid_lite: a hook-based iterative trainer for re-identification and detection research code.

Importing this package imports nothing heavy; torch comes with the first name that needs it.
"""

__version__ = "0.1.0"
