#!/usr/bin/env node
/**
 * The command line: argv → configuration → Layers → run. docs/cli.md describes it.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { doctor } from "./commands/doctor.ts"
import { inbox } from "./commands/inbox.ts"
import { keygen } from "./commands/keygen.ts"
import { outbox } from "./commands/outbox.ts"
import { send } from "./commands/send.ts"
import { serve } from "./commands/serve.ts"
import { layerLog } from "./output.ts"
import { runMain } from "./shutdown.ts"

const pureLink = Command.make("pure-link").pipe(
  Command.withDescription("Moves durable records between nodes over UDP, in order and exactly once"),
  Command.withSubcommands([keygen, serve, send, outbox, inbox, doctor])
)

pureLink.pipe(Command.run({ version: "0.1.0" }), Effect.provide(layerLog), Effect.provide(NodeServices.layer), runMain)
