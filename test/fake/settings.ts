import { env } from 'cloudflare:workers';
import { type Bindings, readSettings, type Settings, settingProblems } from '../../edge/settings.ts';

type TextName = Exclude<keyof Bindings, 'GATE' | 'ROSTER' | 'STREAM'>;
type Texts = Partial<Record<TextName, string | undefined>>;

/** Text bindings that a production Worker of the zones eu and us starts with. */
export function productionTexts(): Texts {
  const { ISSUERS, ATTESTATION, TICKET_KEY, GRANT_KEY, EDGE_KEY, SERVICE_KEYS, ZONES } = env;
  const log = { origin: 'log.test', key: btoa('0123456789abcdef0123456789abcdef') };
  return {
    ...{ ISSUERS, ATTESTATION, TICKET_KEY, GRANT_KEY, EDGE_KEY, SERVICE_KEYS, ZONES, MODE: 'production' },
    FUNCTIONS_URLS: JSON.stringify({ eu: 'https://functions-eu.test', us: 'https://functions-us.test' }),
    AUDIT_LOGS: JSON.stringify({ eu: log, us: log }),
  };
}

export const problemsOf = (texts: Texts): string[] =>
  settingProblems({ ISSUERS: '', ATTESTATION: '', TICKET_KEY: '', ZONES: '', MODE: '', ...texts } as Bindings).map(
    ({ setting, problem }) => `${setting} ${problem}`,
  );

/** The settings of the Worker under test, with some text bindings replaced. */
export function makeSettings(change: Texts): Settings {
  const { ISSUERS, ATTESTATION, TICKET_KEY, GRANT_KEY, EDGE_KEY, ZONES, MODE } = env;
  return readSettings({ ISSUERS, ATTESTATION, TICKET_KEY, GRANT_KEY, EDGE_KEY, ZONES, MODE, ...change } as Bindings);
}
