// The handler of the job type `__name__`: doubles a number. Yours to change; what it can call is in jobq/jobq.h.

#include "jobq/jobq.h"

#include <inttypes.h>
#include <string.h>

// The greatest number that will be doubled.
#define MAX_N 1000000

struct payload {
    int64_t n;
    // How the service that does the doubling feels: "up", "down", "busy" or "closed".
    char service[16];
};

// Reads {"n": 2, "service": "up"}; without a service it is up. Returns what is wrong with it, NULL for nothing.
static const char *read_payload(const char *text, struct payload *payload) {
    strcpy(payload->service, "up");
    if (json_integer(text, "n", &payload->n) != JSON_OK)
        return "`n` is not an integer";
    if (json_string(text, "service", payload->service, sizeof payload->service) == JSON_BAD)
        return "`service` is not a short string";
    return NULL;
}

struct jobq_answer handle(const struct jobq_job *job) {
    struct payload payload;
    const char *problem = read_payload(job->payload, &payload);

    // No attempt could help: the job is dead at once.
    if (problem)
        return jobq_fatal("bad payload: %s", problem);
    if (payload.n < 0 || payload.n > MAX_N)
        return jobq_fatal("`n` is %" PRId64 ", which is not in 0 to %d", payload.n, MAX_N);

    jobq_log(JOBQ_INFO, "doubling %" PRId64 ", attempt %u of %u", payload.n, job->attempt, job->max_attempts);

    // Failed: another attempt after the backoff of the job type.
    if (strcmp(payload.service, "down") == 0)
        return jobq_retry("the service is down");
    // Failed: another attempt after a delay of our own.
    if (strcmp(payload.service, "busy") == 0)
        return jobq_retry_after(30 * 1000, "the service is busy");
    // Not failed, only too early: runs again, and this attempt does not count.
    if (strcmp(payload.service, "closed") == 0)
        return jobq_snooze(60 * 1000);

    return jobq_done("{\"doubled\":%" PRId64 "}", payload.n * 2);
}
