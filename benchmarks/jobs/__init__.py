"""Worker libraries side by side: `python -m benchmarks jobs`.

Each library has an environment of its own, and runs in processes of its own (`peers/`).
"""
