"""What a shell offers when TAB is pressed: one implementation for bash, zsh, fish and kubectl's plugins.

``values`` finds in the command tree what the last word means, and knows what each option and argument can be;
``process`` answers the shell, with names of the live cluster; ``scripts`` are what shells load.
"""
