import type { AgentDescription } from '../../shared/pool/description.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';

/** Names that belong to one pool: twice the agents of a zone, so that restarting pods keep theirs. */
export const ROSTER_NAMES_MAX = 1_024;
/**
 * Time without a hello after which another pool may take a name: a week, as pools get renamed and pauses are
 * shorter.
 */
export const ROSTER_NAME_MS = 7 * 86_400_000;

/** The current use of an agent's name. */
export interface NameUse {
  /** The pool that the name belongs to. */
  readonly owner: string | undefined;
  /** An agent of this name is connected. */
  readonly connected: boolean;
}

/**
 * Returns whether a token of `pool` may use an agent's name. A name belongs to the pool that used it first, with one
 * exception: a pool whose own name begins the agent's name (`pool` for `pool-0`) has the better claim, and the longer of
 * two such pools the best. So no other pool can reserve the names of agents to come. A better claim never takes the name
 * of a connected agent.
 */
export const mayUseName = (agent: string, pool: string, { owner, connected }: NameUse): boolean =>
  owner === undefined || owner === pool || (!connected && rank(agent, pool) > rank(agent, owner));

const rank = (agent: string, pool: string): number =>
  agent === pool || agent.startsWith(`${pool}-`) ? pool.length : 0;

/** Pools that agent names belong to and the process that used each last, on the roster's disk. Bounded for each pool. */
export class AgentNames {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(
      'CREATE TABLE IF NOT EXISTS names (agent TEXT PRIMARY KEY, pool TEXT NOT NULL, boot TEXT NOT NULL, seen INTEGER NOT NULL)',
    );
  }

  /**
   * Records that a process uses a name. Returns the boot that used it before, if any. Refuses with `heartbeat_invalid`
   * when the name belongs to another pool.
   */
  claim(
    { agent, pool }: Pick<AgentDescription, 'agent' | 'pool'>,
    boot: string,
    { now, connected }: { readonly now: number; readonly connected: boolean },
  ): Result<string | undefined> {
    this.#sql.exec('DELETE FROM names WHERE seen < ?', now - ROSTER_NAME_MS);
    const [row] = this.#sql
      .exec<{ pool: string; boot: string }>('SELECT pool, boot FROM names WHERE agent = ?', agent)
      .toArray();
    if (!mayUseName(agent, pool, { owner: row?.pool, connected })) {
      const rule = `the name ${agent} belongs to another pool`;
      return no(refuse('heartbeat_invalid', { rule }, `the name ${agent} belongs to the pool ${row?.pool}`));
    }
    this.#sql.exec(
      'INSERT OR REPLACE INTO names (agent, pool, boot, seen) VALUES (?, ?, ?, ?)',
      agent,
      pool,
      boot,
      now,
    );
    // The bound counts by pool: a pool that names many agents gives up its own names only.
    this.#sql.exec(
      'DELETE FROM names WHERE agent IN (SELECT agent FROM names WHERE pool = ? ORDER BY seen DESC LIMIT -1 OFFSET ?)',
      pool,
      ROSTER_NAMES_MAX,
    );
    return ok(row?.boot);
  }
}
