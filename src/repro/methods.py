"""Names of methods as the papers print them, so that rows join the transcribed tables."""

END_TO_END = "Encoder_d + pooler_d (end-to-end training)"
STEP_1 = "Encoder_opt + pooler_d (After step 1)"
STEP_2 = "Encoder_opt + new-pooler_d (After step 2)"
STAGES = (END_TO_END, STEP_1, STEP_2)
"""the three blocks of Wang et al.'s Tables 1 and 2"""
STAGE_NAMES = {END_TO_END: "end to end", STEP_1: "after step 1", STEP_2: "after step 2"}
"""what tables and legends call them"""
UNTRAINED = "untrained backbone"
