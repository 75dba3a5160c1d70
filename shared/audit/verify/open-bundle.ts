// Opens a bundle: policy, signature of the manifest, then every file by its digest.
import {
  exportName,
  type FileDigest,
  MANIFEST,
  MANIFEST_NOTE,
  type Manifest,
  manifestNoteText,
  POLICY,
} from '../bundle/manifest.ts';
import { openNote } from '../note.ts';
import { openNoteKey } from '../note-key.ts';
import { type Policy, readPolicy } from '../policy.ts';
import { type BundleFiles, digestOf } from './bundle-files.ts';
import { isLaterLog, keysOfLog } from './log-keys.ts';
import { namesExport, readManifest } from './read-manifest.ts';
import type { Findings } from './verdict.ts';

export interface OpenBundle {
  readonly manifest: Manifest;
  readonly policy: Policy;
  /** Reads a listed file and verifies its digest; reports a mismatch. */
  read(path: string): Promise<Uint8Array | undefined>;
  /** Verifies the digest of a file without returning its bytes. */
  check(path: string): Promise<FileDigest | undefined>;
  /** Verifies unread files, and reports unlisted ones. */
  readRest(): Promise<void>;
}

/** Opens a bundle; `undefined` when the log did not sign the manifest: then nothing in the bundle counts. */
export async function openBundle(
  files: BundleFiles,
  givenPolicy: Uint8Array | undefined,
  findings: Findings,
): Promise<OpenBundle | undefined> {
  const wrong = (text: string) => void findings.add('manifest', 'invalid', text);
  const [bytes, note] = [await files.read(MANIFEST), await files.read(MANIFEST_NOTE)];
  // A damaged export still has its note, or a manifest that names an export. Other files never were one.
  if (!note && !(bytes && namesExport(bytes))) {
    return void findings.add('manifest', 'no-export', `there is no ${MANIFEST} of an export`);
  }
  const policyBytes = givenPolicy ?? (await files.read(POLICY));
  if (!policyBytes) return wrong(`there is no ${POLICY}`);
  const policy = readPolicy(policyBytes);
  if (!policy.ok) return wrong(`the policy cannot be read: ${policy.refusal}`);
  if (!bytes || !note) return wrong(`there is no ${bytes ? MANIFEST_NOTE : MANIFEST}`);
  const manifest = readManifest(bytes);
  if ('wrong' in manifest) return wrong(`the manifest: ${manifest.wrong}`);
  const { origin } = manifest.log;
  if (!policy.value.logs.some(({ key }) => key.name === origin)) return wrong(`the policy has no key of ${origin}`);
  const { log: later = origin } = manifest.anchor;
  // After the year's key is retired, the log with the export's entry signs the manifest.
  const names = isLaterLog(later, origin) ? [origin, later] : [origin];
  const opened = await Promise.all(names.map((name) => openManifestNote(note, policy.value, name)));
  if (opened.every((one) => !one)) return wrong(`${MANIFEST_NOTE} is not signed by ${exportName(origin)}`);
  const digest = await digestOf(bytes);
  if (!names.some((name, at) => opened[at] === manifestNoteText(name, digest)))
    return wrong(`${MANIFEST} is not the one that ${MANIFEST_NOTE} was signed for`);
  return { manifest, policy: policy.value, ...openFiles(files, manifest, findings) };
}

/** Returns the text of the manifest's note, if the log's keys sign it under the name of manifests. */
async function openManifestNote(note: Uint8Array, { logs }: Policy, origin: string): Promise<string | undefined> {
  const keys = keysOfLog(logs, origin).map((key) => openNoteKey({ ...key, name: exportName(origin) }));
  return (await openNote(note, await Promise.all(keys)))?.text;
}

function openFiles(
  files: BundleFiles,
  manifest: Manifest,
  findings: Findings,
): Pick<OpenBundle, 'read' | 'check' | 'readRest'> {
  const listed = new Map(manifest.files.map((file) => [file.path, file]));
  const unread = new Set(listed.keys());
  const wrong = (text: string) => void findings.add('files', 'invalid', text);
  const read = async (path: string): Promise<Uint8Array | undefined> => {
    unread.delete(path);
    const file = listed.get(path);
    if (!file) return wrong(`${path} is not in the manifest`);
    const bytes = await files.read(path);
    if (!bytes) return wrong(`${path} is missing`);
    const same = bytes.length === file.bytes && (await digestOf(bytes)) === file.sha256;
    return same ? bytes : wrong(`${path} is not the file that the manifest lists`);
  };
  const check = async (path: string): Promise<FileDigest | undefined> => {
    const file = listed.get(path);
    if (!file || !files.digest) return (await read(path)) && file;
    unread.delete(path);
    const found = await files.digest(path);
    if (!found) return wrong(`${path} is missing`);
    const same = found.bytes === file.bytes && found.sha256 === file.sha256;
    return same ? file : wrong(`${path} is not the file that the manifest lists`);
  };
  return {
    read,
    check,
    async readRest() {
      for (const path of [...unread]) await check(path);
      for (const path of await files.list()) {
        const ours = /^(entries|disclosures)\b|^(proofs|checkpoints|derived|links)\//.test(path);
        if (ours && !listed.has(path)) wrong(`${path} is here, and the manifest does not list it`);
      }
    },
  };
}
