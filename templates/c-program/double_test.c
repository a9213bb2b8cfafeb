// Tests of double.c natively, without WebAssembly: `make test`.

#include "double.h"

#include <stdio.h>
#include <string.h>

static int failures;

static void expect(const char *payload, long expected, const char *expected_message) {
    long doubled = 0;
    char message[200] = "";
    double_payload(payload, &doubled, message, sizeof message);
    if (doubled != expected || strcmp(message, expected_message) != 0) {
        fprintf(stderr, "FAIL %s: %ld `%s`\n", payload, doubled, message);
        failures++;
    }
}

int main(void) {
    expect("{\"n\": 2}", 4, "");
    expect("{\"tags\": [1, {\"n\": 7}], \"service\": \"\\u0075p\", \"n\": 3}", 6, "");
    expect("{\"n\": -1}", 0, "`n` is -1, which is not in 0 to 1000000");
    expect("{\"n\": 2", 0, "bad payload: `n` is not an integer");
    expect("{\"n\": 2, \"service\": \"down\"}", 0, "the service is down");
    printf(failures ? "%d failed\n" : "all passed\n", failures);
    return failures != 0;
}
