"""A change of a Node: planned, looked at once more, applied, verified, undone.

    removal.plan_removal(snapshot, Removal(...)) -> ChangePlan        pure
    undo_record.record_of(plan, server) -> UndoRecord                 pure
    undo_file.write_undo(record, path)                                temp, fsync, rename
    apply.apply_plan(api, plan) -> AppliedChange                      PATCH, explained when refused
    verify.judge(node, applied) -> outcomes                           pure
    verify.verify(read, applied, seconds) -> outcomes                 polls

What belongs here: deciding and doing. What is read comes as a Snapshot from `collect`; what is sent
goes through `writes`. Nothing here prints or asks a person.
"""
