"""An application with upstash-workflow and FastAPI, as its users write it. Workflows print what they ran."""

import os
import sys

import uvicorn
from fastapi import FastAPI
from qstash import AsyncQStash, Receiver
from upstash_workflow import AsyncWorkflowContext, CallResponse
from upstash_workflow.fastapi import Serve

port = int(os.environ["APP_PORT"])
url = f"http://127.0.0.1:{port}"
app = FastAPI()
serve = Serve(app)
common = {
    "qstash_client": AsyncQStash(os.environ["QSTASH_TOKEN"], base_url=os.environ["QSTASH_URL"]),
    "receiver": Receiver(
        current_signing_key=os.environ["QSTASH_CURRENT_SIGNING_KEY"],
        next_signing_key=os.environ["QSTASH_NEXT_SIGNING_KEY"],
    ),
}


def say(*words):
    print(*words, flush=True)


@app.post("/plain")
async def plain():
    return {"tea": True}


@serve.post("/steps", url=f"{url}/steps", **common)
async def steps(context: AsyncWorkflowContext[str]) -> None:
    async def first():
        say("first", context.request_payload)
        return "one"

    one = await context.run("first", first)
    await context.sleep("nap", 1)

    async def second():
        say("second", one)
        return {"two": 2}

    two = await context.run("second", second)
    response: CallResponse = await context.call("called", url=f"{url}/plain", method="POST", body={"x": 1})

    async def third():
        say("third", two["two"], response.status, response.body)

    await context.run("third", third)


async def on_failure(context, status, text, headers):
    say("failure", status, context.request_payload)


@serve.post("/fails", url=f"{url}/fails", retries=0, failure_function=on_failure, **common)
async def fails(context: AsyncWorkflowContext[str]) -> None:
    async def bad():
        say("bad")
        raise RuntimeError("no way")

    await context.run("bad", bad)


if __name__ == "__main__":
    say("listening")
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")
    sys.exit(0)
