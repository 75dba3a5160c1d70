/**
 * Returns the cohort of a session while a revision is on trial: stable for a tenant and session, and a
 * session stays in while the share grows. Load plays no part, so that the cohorts can be compared. `share` is
 * 0 (no session) to 1.
 */
export function cohortOf(tenant: string, session: string, share: number): 'stable' | 'canary' {
  return hash(`${tenant}\n${session}`) / 2 ** 32 < share ? 'canary' : 'stable';
}

/** 32-bit FNV-1a with the finaliser of MurmurHash3: even on short names, and not meant to resist an attacker. */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
