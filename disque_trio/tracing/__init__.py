"""What happened, as rows. The simulator and live nodes write the same ones.

It imports the machine only. The simulator, the server and the pipeline import it.
"""
