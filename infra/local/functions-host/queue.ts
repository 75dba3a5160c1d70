// Queue trigger: at least once, with a dequeue count, and a poison queue after too many failures.
import type { DequeuedMessageItem, QueueClient } from '@azure/storage-queue';
import { describe, type HostContext, poll } from './context.ts';
import { invoke, json, newRequest, text } from './invoke.ts';
import { writeOutputs } from './outputs.ts';
import { fillSettings } from './patterns.ts';
import type { Trigger } from './registry.ts';

/** Seconds for which a message in work is invisible to other receivers: the platform's ten minutes. */
const INVISIBLE_S = 600;

export async function listenToQueue(context: HostContext, trigger: Trigger): Promise<void> {
  const { target, triggerName, binding } = trigger;
  const { queues } = context.hostJson.extensions;
  const account = context.accounts.queues(binding.connection);
  const queue = account.getQueueClient(fillSettings(binding.queueName ?? '', context.settings));
  await queue.createIfNotExists();

  const attempt = async (message: DequeuedMessageItem): Promise<void> => {
    const body =
      queues.messageEncoding === 'none'
        ? message.messageText
        : Buffer.from(message.messageText, 'base64').toString('utf8');
    const request = newRequest(target, triggerName, text(body), {
      metadata: {
        QueueTrigger: text(body),
        Id: text(message.messageId),
        DequeueCount: json(message.dequeueCount),
        InsertionTime: text(message.insertedOn.toISOString()),
        ExpirationTime: text(message.expiresOn.toISOString()),
        NextVisibleTime: text(message.nextVisibleOn.toISOString()),
        PopReceipt: text(message.popReceipt),
      },
    });
    await writeOutputs(context, target, await invoke(target, request), { queueTrigger: body });
    await queue.deleteMessage(message.messageId, message.popReceipt);
  };

  const work = async (message: DequeuedMessageItem): Promise<void> => {
    try {
      await attempt(message);
    } catch (error) {
      context.log('error', `${target.metadata.name} failed (dequeue ${message.dequeueCount}): ${describe(error)}`);
      if (message.dequeueCount >= queues.maxDequeueCount) {
        await bury(account.getQueueClient(`${queue.name}-poison`), message.messageText);
        await queue.deleteMessage(message.messageId, message.popReceipt);
      } else {
        const invisibleS = Math.round(queues.visibilityTimeout / 1_000);
        await queue.updateMessage(message.messageId, message.popReceipt, undefined, invisibleS);
      }
    }
  };

  void poll(context, target.metadata.name, async () => {
    const { receivedMessageItems } = await queue.receiveMessages({
      numberOfMessages: queues.batchSize,
      visibilityTimeout: INVISIBLE_S,
    });
    await Promise.all(receivedMessageItems.map(work));
    return receivedMessageItems.length > 0;
  });
}

/** Moves a message to the poison queue, which the host never reads; a person or a timer of the app does. */
export async function bury(poison: QueueClient, message: string): Promise<void> {
  await poison.createIfNotExists();
  await poison.sendMessage(message);
}
