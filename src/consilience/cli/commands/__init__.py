"""The commands, one file each. Whatever a command needs is loaded when it runs, so that help is quick."""
