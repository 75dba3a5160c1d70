// The storage template grants what the code relies on.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { areas } from '../../../functions/audit/log/log-store.ts';
import { ROOT } from '../../../infra/local/root.ts';

/** Without comments: what is said must also be done. */
const read = (file: string): string =>
  readFileSync(path.join(ROOT, 'infra/azure/audit', file), 'utf8').replace(/^\s*\/\/.*$/gm, '');
const code = read('storage.bicep');

/** The block of a resource, up to the next one. */
function resource(name: string, text = code): string {
  const [, found] = new RegExp(`^resource ${name} ([\\s\\S]*?)(?=^resource |^output )`, 'm').exec(text) ?? [];
  if (found === undefined) throw new Error(`no resource ${name}`);
  return found;
}

describe('C9 C12 storage of the audit logs on Azure', () => {
  it('the log’s container is locked for 2557 days, without appends', () => {
    expect(code).toMatch(/^param days int = 2557$/m);
    const policy = resource('lockedFor');
    expect(policy).toContain("containers/immutabilityPolicies@2024-01-01' = if (!policyLocked)");
    expect(policy).toMatch(/parent: log\b/);
    expect(policy).toContain('immutabilityPeriodSinceCreationInDays: days');
    expect(policy).toContain('allowProtectedAppendWrites: false');
    expect(policy).toContain('allowProtectedAppendWritesAll: false');
    const lock = resource('lock');
    expect(lock).toContain('dependsOn: [mayLock, lockedFor]');
    expect(lock).toContain('immutability-policy lock $at --if-match');
    expect(lock).toContain('--container-name audit-log');
    expect(lock).toMatch(/test "\$\(show state\)" = Locked\n/);
  });

  it('every area has a container, and only the log’s is under the policy', () => {
    expect(resource('log')).toContain("name: 'audit-log'");
    const others = areas.filter((area) => area !== 'log').map((area) => `'audit-${area}'`);
    expect(resource('changing')).toContain(`[${others.join(', ')}]`);
    expect(code.match(/immutabilityPolicies@/g)).toHaveLength(1);
  });

  it('deletion is final: a recoverable key is not destroyed', () => {
    expect(resource('blobs')).toContain('deleteRetentionPolicy: { enabled: false }');
    expect(resource('blobs')).toContain('isVersioningEnabled: false');
    expect(resource('storage')).toContain('allowBlobPublicAccess: false');
    expect(resource('readsLog')).toContain('scope: log');
  });
});

describe('C9 T7 the key of the audit logs on Azure', () => {
  it('is a P-256 hardware key; the functions may only sign with it', () => {
    const text = read('key.bicep');
    const key = resource('key', text);
    expect(key).toContain("kty: 'EC-HSM'");
    expect(key).toContain("curveName: 'P-256'");
    expect(key).toContain("keyOps: ['sign', 'verify']");
    expect(key).toContain('exportable: false');
    expect(resource('store', text)).toMatch(/enableRbacAuthorization: true[\s\S]*enablePurgeProtection: true/);
    const role = resource('maySign', text);
    expect(role).toContain('scope: key');
    expect(role).toContain("subscriptionResourceId('Microsoft.Authorization/roleDefinitions', cryptoUser)");
    // "Key Vault Crypto User".
    expect(text).toContain("var cryptoUser = '12338af0-0e69-4776-bea7-57ae8d297424'");
    expect(text.match(/roleAssignments@/g)).toHaveLength(1);
  });
});
