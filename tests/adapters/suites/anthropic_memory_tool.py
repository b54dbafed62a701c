"""The tests of the memory tool in the Anthropic SDK."""

from tests.adapters.suite import Suite

_TESTS = "tests/lib/tools/memory_tools/test_filesystem.py"
_CLASSES = ("TestBetaLocalFilesystemMemoryTool", "TestBetaAsyncLocalFilesystemMemoryTool")
_COMMANDS = ("view", "str_replace", "insert")

_FOLDERS = "is about folders on a disk and who may read them; it builds the SDK's own tool and never asks for ours"
_SYMLINKS = "puts symbolic links on the disk, and a memory store has none"
_LINES = "writes a file of 5 MB, and a memory holds 100 kB, as in the Anthropic API, so no file has so many lines"

_OF_LINKS = (
    *(f"test_read_rejects_symlink_created_after_validation[{command}]" for command in _COMMANDS),
    *(f"test_read_rejects_file_replaced_with_symlink_before_open[{command}]" for command in _COMMANDS),
    "test_view_rejects_directory_symlink_created_after_validation",
    "test_symlink_validation_reject_symlink_pointing_outside_memories",
    "test_view_lists_symlinks_only_when_they_stay_inside_memories",
    "test_symlink_validation_reject_creating_files_through_symlink_pointing_outside",
    "test_symlink_validation_reject_parent_directory_that_is_symlink_pointing_outside",
)
_WHY = {
    "test_mkdir_parents_not_world_writable_under_permissive_umask": _FOLDERS,
    "test_view_error_for_files_with_too_many_lines": _LINES,
    **dict.fromkeys(_OF_LINKS, _SYMLINKS),
}

SUITE = Suite(
    sdist="anthropic==2.9.0",
    sha256="0a3379add94953db2dc736839bbafb0c624f6bec69caf13e44353d906c253981",
    files=(_TESTS,),
    plugin="anthropic_memory_tool",
    options=("-o", "addopts="),  # several processes would need a plugin, and more engines
    deselected={f"{_TESTS}::{each}::{test}": why for each in _CLASSES for test, why in _WHY.items()}
    | {f"{_TESTS}::{_CLASSES[1]}::test_validate_path_returns_resolved_path_not_symlink_target": _SYMLINKS},
)
