"""Run studies: an executor runs their cells, a restarted study resumes, and a failing cell never stops the others.

A cell is run and recorded in this process, in another one, or on another machine.
"""
