"""`python -m recollect` is the `recollect` command."""

from recollect.doors.cli.main import main

main()
