"""How large a benchmark is: whole, or a hundredth of it, which only shows that it runs."""

import os

QUICK = "RECOLLECT_BENCH_QUICK"
_SHARE = 100


def sized(whole: int, at_least: int = 1) -> int:
    """So many of something, or a hundredth of it in a quick run."""
    return max(whole // _SHARE, at_least) if os.environ.get(QUICK) else whole
