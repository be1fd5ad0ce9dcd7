// Burgers' equation on a periodic line, du/dt + d(u^2/2)/dx = nu d2u/dx2: advances one trajectory in place.
//
// Engquist-Osher flux and explicit Euler; each frame has as many steps as its fastest cell needs.
// Returns 0, or 1 with a sentence in `message`, which has room for `room` characters.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <vector>

constexpr double most_steps = 100000;

static void advance(double *u, std::int64_t cells, std::int64_t frames, double frame_step, double dx, double nu)
{
    std::vector<double> flux(cells); // flux[i] leaves cell i to the right
    for (std::int64_t frame = 0; frame < frames; frame++) {
        double fastest = 0;
        for (std::int64_t i = 0; i < cells; i++)
            fastest = std::max(fastest, std::abs(u[i]));
        const double steps = std::max(std::ceil(frame_step * (fastest / dx + 2 * nu / (dx * dx))), 1.0);
        if (!(steps <= most_steps)) {
            std::ostringstream sentence;
            sentence << "a frame needs " << steps << " steps at a speed of " << fastest << "; at most " << most_steps << " are made";
            throw std::runtime_error(sentence.str());
        }
        const double dt = frame_step / steps;
        for (std::int64_t step = 0; step < static_cast<std::int64_t>(steps); step++) {
            for (std::int64_t i = 0; i < cells; i++) {
                const double left = u[i], right = u[i + 1 < cells ? i + 1 : 0];
                const double rightward = std::max(left, 0.0), leftward = std::min(right, 0.0);
                flux[i] = 0.5 * (rightward * rightward + leftward * leftward) - nu * (right - left) / dx;
            }
            for (std::int64_t i = 0; i < cells; i++)
                u[i] -= dt / dx * (flux[i] - flux[i > 0 ? i - 1 : cells - 1]);
        }
    }
}

// The name without C++ mangling; no exception may leave it, since the caller is not C++.
extern "C" int burgers(double *u, std::int64_t cells, std::int64_t frames, double frame_step, double dx, double nu,
                       char *message, std::int64_t room)
{
    try {
        advance(u, cells, frames, frame_step, dx, nu);
        return 0;
    } catch (const std::exception &error) {
        std::snprintf(message, room, "%s", error.what());
        return 1;
    }
}
