"""Compiled forms of the schemes: what numba runs. The textbook forms stand in the systems' own files, one room up.

Kernels are serial functions that release the GIL; threads are plain Python threads (`team.py`). They are compiled on the
first call and cached on disk, and importing a system never imports numba.
"""
