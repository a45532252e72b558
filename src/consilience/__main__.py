"""``python -m consilience`` is the command line."""

from consilience.cli import main

if __name__ == "__main__":
    main()
