! Burgers' equation on a periodic line, du/dt + d(u^2/2)/dx = nu d2u/dx2: advances one trajectory in place.
!
! Engquist-Osher flux and explicit Euler; each frame has as many steps as its fastest cell needs.
! Returns 0, or 1 with a sentence in `message`, which has room for `room` characters.

function burgers(u, cells, frames, frame_step, dx, nu, message, room) result(status) bind(C, name="burgers")
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_null_char
  implicit none
  integer(c_int64_t), value :: cells, frames, room
  real(c_double), value :: frame_step, dx, nu
  real(c_double), intent(inout) :: u(cells)
  character(kind=c_char), intent(out) :: message(room)
  integer(c_int) :: status

  real(c_double), parameter :: most_steps = 100000
  real(c_double) :: flux(0:cells), right(cells), fastest, steps, dt
  character(len=200) :: sentence
  integer(c_int64_t) :: frame, step
  integer :: i

  status = 0
  do frame = 1, frames
    fastest = maxval(abs(u))
    steps = max(frame_step * (fastest / dx + 2 * nu / dx**2), 1.0_c_double)
    if (.not. steps <= most_steps) then
      write (sentence, '(3(a, es9.2), a)') "a frame needs", steps, " steps at a speed of", fastest, &
        "; at most", most_steps, " are made"
      do i = 1, int(min(int(len_trim(sentence), c_int64_t), room - 1))
        message(i) = sentence(i:i)
      end do
      message(i) = c_null_char
      status = 1
      return
    end if
    steps = ceiling(steps)
    dt = frame_step / steps
    do step = 1, int(steps, c_int64_t)
      right = cshift(u, 1)
      flux(1:) = 0.5_c_double * (max(u, 0.0_c_double)**2 + min(right, 0.0_c_double)**2) - nu * (right - u) / dx
      flux(0) = flux(cells)
      u = u - dt / dx * (flux(1:) - flux(:cells - 1))
    end do
  end do
end function burgers
