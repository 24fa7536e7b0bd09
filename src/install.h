/* `cnibox --install DIR`. */
#pragma once

/* Makes in the directory, which is made if need be, a relative symlink to this binary for each
 * applet. What is there and is no symlink stays, and is a failure. Says on stderr what failed;
 * returns the exit status. */
int install(const char *dir);
