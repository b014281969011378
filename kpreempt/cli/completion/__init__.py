"""What a shell is told when TAB is pressed: one implementation for bash, zsh, fish and kubectl's plugins.

``words`` finds in the command tree what the last word means, ``values`` knows what each option and argument can be,
``cluster`` asks the live cluster within a deadline, ``cache`` keeps its answers for a minute,
``process`` answers the shell, ``scripts`` are what shells load.
"""
