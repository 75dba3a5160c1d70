import { env } from 'cloudflare:workers';
import { readSettings, type Settings } from '../../edge/settings.ts';

type TextName =
  | 'ISSUERS'
  | 'ATTESTATION'
  | 'TICKET_KEY'
  | 'GRANT_KEY'
  | 'ZONES'
  | 'MODE'
  | 'AUDIT_LOGS'
  | 'BACK_OFFICES';

/** The settings of the Worker under test, with some text bindings replaced. */
export function makeSettings(change: Partial<Record<TextName, string>>): Settings {
  const { ISSUERS, ATTESTATION, TICKET_KEY, GRANT_KEY, ZONES, MODE } = env;
  return readSettings({ ISSUERS, ATTESTATION, TICKET_KEY, GRANT_KEY, ZONES, MODE, ...change });
}
