"""Arrays in, arrays out: no state, no checks, no warnings, no input or output."""
