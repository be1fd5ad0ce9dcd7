/* Burgers' equation on a periodic line, du/dt + d(u^2/2)/dx = nu d2u/dx2: advances one trajectory in place.

   Engquist-Osher flux and explicit Euler; each frame has as many steps as its fastest cell needs.
   Returns 0, or 1 with a sentence in `message`, which has room for `room` characters. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_STEPS 100000.0

int burgers(double *u, int64_t cells, int64_t frames, double frame_step, double dx, double nu, char *message, int64_t room)
{
    double *flux = malloc(cells * sizeof *flux); /* flux[i] leaves cell i to the right */
    if (flux == NULL) {
        snprintf(message, room, "there is no memory for %lld cells", (long long)cells);
        return 1;
    }
    for (int64_t frame = 0; frame < frames; frame++) {
        double fastest = 0.0;
        for (int64_t i = 0; i < cells; i++)
            if (fabs(u[i]) > fastest)
                fastest = fabs(u[i]);
        double steps = fmax(ceil(frame_step * (fastest / dx + 2.0 * nu / (dx * dx))), 1.0);
        if (!(steps <= MOST_STEPS)) {
            snprintf(message, room, "a frame needs %.3g steps at a speed of %.3g; at most %.3g are made", steps, fastest, MOST_STEPS);
            free(flux);
            return 1;
        }
        double dt = frame_step / steps;
        for (int64_t step = 0; step < (int64_t)steps; step++) {
            for (int64_t i = 0; i < cells; i++) {
                double left = u[i], right = u[i + 1 < cells ? i + 1 : 0];
                double rightward = left > 0.0 ? left : 0.0, leftward = right < 0.0 ? right : 0.0;
                flux[i] = 0.5 * (rightward * rightward + leftward * leftward) - nu * (right - left) / dx;
            }
            for (int64_t i = 0; i < cells; i++)
                u[i] -= dt / dx * (flux[i] - flux[i > 0 ? i - 1 : cells - 1]);
        }
    }
    free(flux);
    return 0;
}
