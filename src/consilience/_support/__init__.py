"""What every subpackage may use: errors and warnings with hints, whole files, soft imports."""
