// The job type `__name__`: doubles a number.
//
// An ordinary program: the payload is on stdin, the result goes to stdout, and exit status 0
// means success. With any other status, the job runs again later, and the end of stderr is the error message.

#include "double.h"

#include <stdio.h>

int main(void) {
    static char payload[1 << 20];
    size_t length = fread(payload, 1, sizeof payload - 1, stdin);
    if (ferror(stdin) || !feof(stdin)) {
        fprintf(stderr, "the payload cannot be read, or is longer than 1 MiB\n");
        return 1;
    }
    payload[length] = '\0';

    char message[200];
    long doubled;
    if (!double_payload(payload, &doubled, message, sizeof message)) {
        fprintf(stderr, "%s\n", message);
        return 1;
    }
    printf("{\"doubled\":%ld}\n", doubled);
    return 0;
}
