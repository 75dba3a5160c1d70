// The rows of `auricle model …` on revisions in the table of commands.
import type { Command, Takes } from '../command.ts';

const run: Command['run'] = async (given, headers) => (await import('./model.ts')).model(given, headers);
const name: Command['run'] = async (given, headers) => (await import('./name.ts')).name(given, headers);
const tiers: Command['run'] = async (given, headers) => (await import('./tiers.ts')).tiers(given, headers);
const KEY = ['key', 'PEM file to sign with: P-256 or SM2', 'FILE'] as const satisfies Takes;
const signs = [KEY, 'as'] as const;

export const modelCommands: readonly Command[] = [
  {
    name: 'model sign',
    operands: 'FOLDER [PART…]',
    does: 'signs the files of a folder, or of these folders in it: model.sig, with SM2 model.sm2.sig',
    takes: ['sla', ...signs, 'state'],
    local: true,
    run,
  },
  {
    name: 'model verify',
    operands: 'FOLDER [PART…]',
    does: 'verifies the files against their signature',
    takes: [['key', 'PEM file of the signer', 'FILE'], 'as', 'state'],
    local: true,
    run,
  },
  {
    name: 'model register',
    operands: 'MODEL FOLDER|SIGNATURE|EXPORT',
    does: 'registers signed revisions',
    run,
  },
  {
    name: 'model push',
    operands: 'FOLDER [PART…]',
    does: 'registers a signed revision and stores its files, from which agents load it',
    takes: [['model', 'name of the model; default the first PART, or the folder', 'NAME']],
    run,
  },
  {
    name: 'model revisions',
    operands: 'MODEL',
    does: 'shows the stage of each revision, and the aliases',
    takes: ['at'],
    run,
  },
  { name: 'model evidence', operands: 'MODEL REVISION', does: 'shows live evidence of a revision', run },
  {
    name: 'model promote',
    operands: 'MODEL REVISION',
    does: 'signs that a revision moves to the next stage, or to --to',
    takes: [['to', 'stage, or a share of the canary as 25%', 'STAGE|N%'], 'evidence', 'reason', ...signs],
    run,
  },
  {
    name: 'model takeover',
    operands: 'MODEL REVISION',
    does: 'takes over a stopped rollout: its revision may advance again',
    takes: ['reason', ...signs],
    run,
  },
  {
    name: 'model approve',
    operands: 'MODEL TRANSITION',
    does: 'adds a signature to a signed transition',
    takes: signs,
    run,
  },
  {
    name: 'model alias',
    operands: 'MODEL ALIAS REVISION|none',
    does: 'moves an alias',
    takes: ['reason'],
    run,
  },
  {
    name: 'model rollback',
    operands: 'MODEL',
    does: 'moves an alias back to the revision before',
    takes: ['alias', 'reason'],
    run,
  },
  {
    name: 'name set',
    operands: 'NAME MODEL',
    does: 'serves requests for NAME by a model; `default` is for requests that name none',
    takes: ['tenant', 'reason'],
    run: name,
  },
  { name: 'name list', does: 'lists names and their models', run: name },
  {
    name: 'name remove',
    operands: 'NAME',
    does: 'removes a name',
    takes: ['tenant', 'reason'],
    run: name,
  },
  {
    name: 'model where',
    operands: 'MODEL',
    does: 'shows the storage tier of each revision, and which agents have it',
    run,
  },
  { name: 'tiers', does: 'shows files and monthly cost of each storage tier', run: tiers },
  {
    name: 'tiers explain',
    operands: 'MODEL',
    does: 'explains the tier of each revision, in storage and at each agent',
    run: tiers,
  },
  { name: 'model log', operands: 'MODEL', does: 'shows the log of a model', takes: ['at'], run },
  {
    name: 'model export',
    operands: 'MODEL [VERSION]',
    does: 'writes its revisions as an Azure ML list, or one for `az ml model create --file`',
    takes: [['out', 'file to write; default stdout', 'FILE'], 'force'],
    run,
  },
];
