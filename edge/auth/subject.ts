import { createHmac } from 'node:crypto';
import type { AuditEvent } from '../../shared/audit/event.ts';
import { TOKEN_CACHE_MAX } from './token-cache.ts';

const commitTo = (subject: string, salt: Uint8Array): string =>
  `c1:${createHmac('sha256', salt).update(subject).digest('hex')}`;

/**
 * Replaces the subject of events by a commitment: the record shows that two requests have the same caller,
 * and identify a caller to a reader who knows name and salt; it does not reveal the name. The salt never
 * leaves this object.
 */
export class Commitments {
  readonly #salt: Uint8Array;
  readonly #known = new Map<string, string>();

  constructor(salt: Uint8Array) {
    this.#salt = salt;
  }

  hide(event: AuditEvent): AuditEvent {
    const subject = 'subject' in event && event.subject !== undefined && { subject: this.of(event.subject) };
    const grantee = 'grantee' in event && event.grantee !== undefined && { grantee: this.of(event.grantee) };
    return subject || grantee ? ({ ...event, ...subject, ...grantee } as AuditEvent) : event;
  }

  /** Returns the commitment to a subject. */
  of(subject: string): string {
    const before = this.#known.get(subject);
    if (before !== undefined) return before;
    const made = commitTo(subject, this.#salt);
    if (this.#known.size >= TOKEN_CACHE_MAX) this.#known.clear();
    this.#known.set(subject, made);
    return made;
  }
}

/** Opens the commitments with this object's own salt, drawn at its first start. */
export function openCommitments(sql: SqlStorage): Commitments {
  sql.exec('CREATE TABLE IF NOT EXISTS salt (id INTEGER PRIMARY KEY CHECK (id = 0), bytes BLOB NOT NULL)');
  sql.exec('INSERT OR IGNORE INTO salt VALUES (0, ?)', crypto.getRandomValues(new Uint8Array(32)).buffer);
  const { bytes } = sql.exec<{ bytes: ArrayBuffer }>('SELECT bytes FROM salt').one();
  return new Commitments(new Uint8Array(bytes));
}
