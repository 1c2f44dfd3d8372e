# Doxygen's input filter: makes docstrings of the plain comments of a header, and leaves nothing in them that Doxygen
# would take for a command or for HTML.
/^[[:space:]]*#/b
/\/\//{
  # The code, a mark, and the comment.
  s#//[/!]*# \x01#
  h
  s/^.*\x01//
  s/[\\@<>&$%"#]/\\&/g
  s/(::|->)/\\\1/g
  s#`([^`]*)`#<tt>\1</tt>#g
  x
  s/\x01.*$/\x01/
  G
  s/\n//
  s#^([[:space:]]*)\x01#\1///#
  s#\x01#///<#
}
