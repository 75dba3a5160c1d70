// GET /api/audit/{zone}/health
import { refuse } from '../../../shared/refusal.ts';
import type { EdgeHandler } from '../../caller/from-edge.ts';
import { answer, answerNo } from '../../http/answer.ts';
import type { Rows } from '../../store/rows.ts';
import type { LogContext } from '../context/log-context.ts';
import { verified } from '../context/verified.ts';
import { readLogHealth } from './read-log-health.ts';

/** Reports the health of a log without its content, and which stores are full. */
export const onLogHealth = (
  context: LogContext | undefined,
  rows: Rows,
  findFull: () => Promise<string[]>,
): EdgeHandler =>
  verified(context, async (request, _caller, found) => {
    const { zone = '' } = request.params;
    if (!found.zones.includes(zone)) return answerNo(refuse('zone_unserved', { zone }));
    const [health, fullStores] = await Promise.all([readLogHealth({ ...found, rows }, zone), findFull()]);
    return answer(200, { ...health, ...(fullStores.length > 0 && { fullStores }) });
  });
