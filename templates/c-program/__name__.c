/* The job type __name__: reads a payload from stdin and writes it to stdout as its result. */
#include <stdio.h>

int main(void) {
    int byte;
    while ((byte = getchar()) != EOF) putchar(byte);
    return ferror(stdin) || fflush(stdout) ? 1 : 0;
}
