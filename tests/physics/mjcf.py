"""A scene of a user's own, as MuJoCo reads it."""

MINE = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body name="hand" pos="0 0 0.05"><joint type="slide" axis="1 0 0" range="-.5 .5"/><joint type="slide" axis="0 1 0"/>
    <geom type="capsule" size="0.02 0.02" mass="1"/></body>
  <body name="ball" pos="0.1 0 0.03"><freejoint/><geom type="sphere" size="0.03" mass="0.1"/></body>
  <body name="brick" pos="-0.2 0.1 0.02"><freejoint/><geom type="box" size="0.04 0.03 0.02" mass="0.2"/></body>
</worldbody></mujoco>"""
