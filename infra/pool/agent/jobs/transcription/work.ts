import { encodeLine } from '../task/lines.ts';
import { failed, readOutcomeFile, type Task, type Verdict, writeOutcomeFile } from '../task/task.ts';
import { chooseModel, isSenders, recognisePiece } from './recognise-piece.ts';

/** Recognises one piece. */
export async function workPiece(task: Task): Promise<Verdict> {
  const piece = task.job.piece ?? 0;
  const chosen = chooseModel(task);
  if (!chosen.ok) return isSenders(chosen.refusal) ? { type: 'refused', ...chosen } : failed(chosen.refusal);
  const file = readOutcomeFile(task, `pieces/${piece}`);
  if (!file.ok) return failed(file.refusal);
  const recognised = await recognisePiece(task, chosen.value, file.value.bytes);
  // Pieces are our own: whatever is wrong with one is no fault of the sender.
  const wrong = file.value.wrong();
  if (wrong) return failed(wrong);
  if (!recognised.ok) return failed(recognised.refusal);
  const { segments, totals } = recognised.value;
  const lines = [...segments, totals].map(encodeLine);
  const written = await writeOutcomeFile(task, `results/${piece}`, lines, { seconds: totals.seconds });
  return written.ok ? { type: 'done', seconds: totals.seconds } : failed(written.refusal);
}
