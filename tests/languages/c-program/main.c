// Does what no program should: {"do": "panic" | "loop" | "hog"}.

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    char payload[200] = "";
    fread(payload, 1, sizeof payload - 1, stdin);
    if (strstr(payload, "panic"))
        assert(!"hostile to the end");
    if (strstr(payload, "hog"))
        for (;;) {
            static char *volatile last;
            if (!(last = malloc(1 << 20))) {
                fprintf(stderr, "no memory is left\n");
                return 1;
            }
            memset(last, 1, 1 << 20);
        }
    for (volatile unsigned turns = 0;; turns++) {
    }
}
