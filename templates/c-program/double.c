#include "double.h"

#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// The largest number that is accepted.
#define MAX_N 1000000

bool double_payload(const char *payload, long *doubled, char *message, size_t size) {
    int64_t n;
    // The state of the service that does the doubling: "up" or "down".
    char service[16] = "up";
    if (json_integer(payload, "n", &n) != JSON_OK) {
        snprintf(message, size, "bad payload: `n` is not an integer");
        return false;
    }
    if (json_string(payload, "service", service, sizeof service) == JSON_BAD) {
        snprintf(message, size, "bad payload: `service` is not a string of at most 15 bytes");
        return false;
    }
    if (n < 0 || n > MAX_N) {
        snprintf(message, size, "`n` is %" PRId64 ", which is not in 0 to %d", n, MAX_N);
        return false;
    }
    // `jobq logs ID` shows what is written to stderr.
    fprintf(stderr, "doubling %" PRId64 "\n", n);
    if (strcmp(service, "down") == 0) {
        snprintf(message, size, "the service is down");
        return false;
    }
    *doubled = (long)(n * 2);
    return true;
}
