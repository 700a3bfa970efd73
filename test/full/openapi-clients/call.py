import json
import os

import openapi_client as portico

given = os.environ
url = given["GATEWAY"]


def client(**credentials):
    return portico.ApiClient(portico.Configuration(host=url, **credentials))


kv = portico.KvApi(client(access_token=given["KV"])).kv_command(["SET", "of-python", "hello"])
vectors = portico.VectorApi(client(access_token=given["VECTOR"]))
upsert = vectors.vector_upsert([portico.VectorUpsertRequestInner(id="a", vector=[1, 0])])
query = vectors.vector_query(portico.VectorQueryRequest(vector=[1, 0], topK=1))
broker = portico.BrokerApi(
    client(username=given["BROKER_USERNAME"], password=given["BROKER_PASSWORD"])
).broker_produce(broker_produce_request_inner=[portico.BrokerProduceRequestInner(topic=given["TOPIC"], value="hello")])
queue = portico.QueueApi(client(access_token=given["QUEUE"])).queue_publish(
    "https://example.com/hook", upstash_delay="1h", body={"hello": "world"}
)

print(
    json.dumps(
        {
            "kv": kv.result,
            "upsert": upsert.result,
            "query": query.result[0].id,
            "broker": broker[0].topic,
            "queue": queue.actual_instance.url,
        }
    )
)
