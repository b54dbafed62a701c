"""Files of other programs: one module reads each format, and `foreign_files` stores what they yield."""
